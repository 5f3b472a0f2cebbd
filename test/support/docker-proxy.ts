/** Stands between a client and an Engine and passes everything on, but what a test wants otherwise: answers that fail, and an Engine that says it is another. */
import { type IncomingMessage, type ServerResponse, createServer, request } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Lie {
  /** Of requests whose method and path (with their query) it fits: `GET /v1.41/networks?…`. */
  when: RegExp
  status: number
  body: unknown
  /** Do what is asked for, and answer this all the same? */
  afterwards?: boolean
}

export interface DockerProxy {
  host: string
  lies: Lie[]
  /** Every request that came, `METHOD /path?query`. */
  seen: string[]
  /** Paths of everything that was made through it. */
  made: string[]
  /** Called before a request is passed on. */
  before: ((call: string) => void | Promise<void>) | null
  close(): Promise<void>
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The path of what such a call has made: `/containers/<id>`. */
export const madeBy = (call: string, answer: string): string[] => {
  const kind = /POST (?:\/v[\d.]+)?\/(containers|networks|volumes)\/create/.exec(call)?.[1]
  if (kind === undefined) return []
  const { Id: id, Name: name } = JSON.parse(answer) as { Id?: string; Name?: string }
  const own = kind === 'volumes' ? name : id
  return own === undefined ? [] : [`/${kind}/${own}`]
}

/** @param target `unix:///…` */
export const startDockerProxy = async (target: string): Promise<DockerProxy> => {
  const socketPath = target.replace('unix://', '')
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-proxy-'))
  const own = join(folder, 'sock')
  const proxy: DockerProxy = { host: `unix://${own}`, lies: [], seen: [], made: [], before: null, close: async () => {} }

  const passOn = async (asked: IncomingMessage, body: Buffer): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const passed = request({ socketPath, method: asked.method, path: asked.url, headers: asked.headers, agent: false }, resolve)
      passed.on('error', reject)
      passed.end(body)
    })
  const handle = async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const call = `${asked.method} ${asked.url}`
    proxy.seen.push(call)
    await proxy.before?.(call)
    const body = await bodyOf(asked)
    const lie = proxy.lies.find(({ when }) => when.test(call))
    if (lie === undefined || lie.afterwards === true) {
      const real = await passOn(asked, body)
      if (lie === undefined && !/\/create/.test(call)) {
        answer.writeHead(real.statusCode ?? 500, real.headers)
        real.pipe(answer)
        return
      }
      const text = await bodyOf(real)
      proxy.made.push(...madeBy(call, text.toString()))
      if (lie === undefined) {
        answer.writeHead(real.statusCode ?? 500, real.headers)
        answer.end(text)
        return
      }
    }
    answer.writeHead(lie.status, { 'Content-Type': 'application/json' })
    answer.end(lie.body === null ? undefined : JSON.stringify(lie.body))
  }
  const server = createServer((asked, answer) => {
    handle(asked, answer).catch(() => answer.destroy())
  })
  server.on('upgrade', (asked, client, head) => {
    proxy.seen.push(`${asked.method} ${asked.url}`)
    const engine = connect({ path: socketPath, allowHalfOpen: true })
    const headers = asked.rawHeaders.reduce((text, word, i) => text + (i % 2 === 0 ? `${word}: ` : `${word}\r\n`), '')
    engine.write(`${asked.method} ${asked.url} HTTP/1.1\r\n${headers}\r\n`)
    engine.write(head)
    client.on('error', () => engine.destroy())
    engine.on('error', () => client.destroy())
    client.pipe(engine).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(own, resolve))
  proxy.close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
  return proxy
}
