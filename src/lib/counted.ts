/** `1 box`, `3 boxes`, `0 boxes`. @param many where an s is not enough */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`
