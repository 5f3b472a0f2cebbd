/**
 * A web page can make a browser send requests to 127.0.0.1 under a name that resolves there (DNS rebinding). On a loopback bind nobody has
 * a reason to use another name, so any other `Host` is refused before anything else is looked at. A public bind is reached by names that
 * only its owner knows, and every request there needs a token that a browser does not have.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { LeaseholdError } from '../model/errors.ts'

const bare = (host: string): string => host.replace(/^\[|\]$/g, '').toLowerCase()

export const isLoopback = (host: string): boolean => {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'))
}

/** The host of a `Host` header without its port, lower case; null when it is malformed. */
const hostOf = (header: string): string | null => {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]\s/]+)(?::\d{1,5})?$/i.exec(header)
  if (!match) return null
  const name = bare(match[1] as string)
  return match[1]?.startsWith('[') && !isIPv6(name) ? null : name
}

/**
 * @param bind the address that the server listens on
 * @returns the check to make of every request: throws LeaseholdError bad_request
 */
export const createHostCheck = (bind: string): ((header: string | undefined) => void) => {
  if (!isLoopback(bind)) return () => {}
  const allowed = new Set(['localhost', '127.0.0.1', '::1', bare(bind)])
  return (header) => {
    // Browsers always send one; what does not is none.
    if (header === undefined) return
    const name = hostOf(header)
    if (name === null || !allowed.has(name))
      throw new LeaseholdError(
        'bad_request',
        `this coordinator listens on ${bind} only, and answers to localhost, 127.0.0.1 and [::1], not to another host name; bind another address with --host to be reached by name`,
      )
  }
}
