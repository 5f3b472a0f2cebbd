/** A network between one client and a database that can go dead without a word: connections stand, and nothing comes through. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Proxy {
  /** The same URL, by way of this proxy. */
  through(url: string): string
  /** What stands stays, what is new is accepted, and every byte of both is swallowed. */
  halfOpen(): void
  /** Ends every connection by a reset, and lets new ones through. */
  reset(): void
  close(): Promise<void>
}

export const startProxy = async (target: string): Promise<Proxy> => {
  const { hostname, port } = new URL(target)
  const pairs = new Set<{ near: Socket; far: Socket | null }>()
  let swallowing = false

  const server = createServer((near) => {
    const far = swallowing ? null : connect(Number(port), hostname)
    const pair = { near, far }
    pairs.add(pair)
    near.setNoDelay(true)
    far?.setNoDelay(true)
    // Read all the same while it swallows: to its client the connection is as alive as ever.
    near.on('data', (chunk) => {
      if (!swallowing && far !== null && !far.destroyed) far.write(chunk)
    })
    far?.on('data', (chunk) => {
      if (!swallowing && !near.destroyed) near.write(chunk)
    })
    near.on('error', () => {})
    far?.on('error', () => {})
    near.on('close', () => {
      pairs.delete(pair)
      far?.destroy()
    })
    far?.on('close', () => {
      if (!swallowing) near.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = (server.address() as AddressInfo).port
  const resetAll = (): void => {
    for (const { near, far } of pairs) {
      near.resetAndDestroy()
      far?.destroy()
    }
  }
  return {
    through(url) {
      const by = new URL(url)
      by.hostname = '127.0.0.1'
      by.port = String(own)
      return by.href
    },
    halfOpen() {
      swallowing = true
    },
    reset() {
      swallowing = false
      resetAll()
    },
    async close() {
      resetAll()
      server.close()
      await once(server, 'close')
    },
  }
}
