/**
 * The import rule of ARCHITECTURE.md, "Rooms", as a function. The linter holds the same rule in the editor; rooms.test.ts
 * proves that both say the same.
 */
import { posix } from 'node:path'

export const rooms = ['lib', 'model', 'store', 'providers', 'guard', 'telemetry', 'engine', 'prune', 'api', 'cli'] as const
export type Room = (typeof rooms)[number]

const mayImport: Record<Room, readonly Room[]> = {
  lib: [],
  model: ['lib'],
  store: ['lib', 'model'],
  providers: ['lib', 'model'],
  guard: ['lib', 'model'],
  telemetry: ['lib', 'model'],
  engine: ['lib', 'model', 'store'],
  prune: ['lib', 'model', 'store', 'engine'],
  api: ['lib', 'model', 'store', 'providers', 'guard', 'telemetry', 'engine', 'prune'],
  cli: ['lib', 'model', 'store', 'guard', 'telemetry', 'engine', 'prune'],
}

const contract = 'src/providers/contract.ts'

const isRoom = (name: string | undefined): name is Room => rooms.some((room) => room === name)

const roomOf = (file: string): Room | null => {
  const name = /^src\/([^/]+)\//.exec(file)?.[1]
  return isRoom(name) ? name : null
}

/** `src/providers/docker/x.ts`: docker; the contract and its neighbours: null. */
const providerOf = (file: string): string | null => /^src\/providers\/([^/]+)\//.exec(file)?.[1] ?? null

const isServe = (file: string): boolean => /^src\/cli\/serve[^/]*\.ts$/.test(file)

const whyNotFile = (from: string, to: string): string | null => {
  if (to === 'src/main.ts') return 'nothing imports the composition root'
  const [room, target] = [roomOf(from), roomOf(to)]
  if (room === null || target === null || room === target) {
    const [own, other] = [providerOf(from), providerOf(to)]
    return room === 'providers' && other !== null && own !== other ? 'a provider knows no other provider' : null
  }
  if (isServe(from) || mayImport[room].includes(target)) return null
  if (target === 'providers') {
    if (room === 'engine' && to === contract) return null
    if (room === 'prune' && providerOf(to) === 'swarm') return null
    if (
      room === 'cli' &&
      [contract, 'src/providers/process/enter.ts', 'src/providers/docker/enter.ts', 'src/providers/simulated/cloud.ts'].includes(to)
    )
      return null
  }
  return `${room} must not import ${target}`
}

const whyNotPackage = (from: string, name: string): string | null => {
  const room = roomOf(from)
  if (name === 'typebox' && room !== 'api') return 'typebox is for api only'
  if (room === 'model' && name.startsWith('node:')) return 'model is pure'
  const heavy = /^(fastify|@fastify|kysely|pg|pino)$/.test(name)
  return room === 'cli' && heavy && !isServe(from) ? 'only serve loads the packages of the server' : null
}

/**
 * Why a file must not import what a specifier names, or null.
 * @param from path of the importing file from the root of the checkout, with `/`
 */
export const whyForbidden = (from: string, specifier: string): string | null =>
  specifier.startsWith('.')
    ? whyNotFile(from, posix.join(posix.dirname(from), specifier))
    : whyNotPackage(from, specifier.startsWith('node:') ? specifier : (specifier.split('/')[0] as string))
