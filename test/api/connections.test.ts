/** What only a real connection shows. */
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Log } from '../../src/engine/context.ts'
import { until } from '../support/until.ts'
import { benchForAll } from './support.ts'

describe('connections', () => {
  const lines: { level: string; fields: object }[] = []
  const keep =
    (level: string) =>
    (fields: object): void =>
      void lines.push({ level, fields })
  const log: Log = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }
  const bench = benchForAll({ start: false, log })
  let port = 0
  beforeAll(async () => {
    await bench().api.listen({ host: '127.0.0.1', port: 0 })
    port = (bench().api.server.address() as AddressInfo).port
  })
  beforeEach(() => void lines.splice(0))
  const sockets: { destroy(): void }[] = []
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
  })

  const send = async (text: string): Promise<{ answer: () => string; closed: Promise<unknown>; end: () => void }> => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    let received = ''
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()))
    socket.on('error', () => {})
    const closed = once(socket, 'close')
    await once(socket, 'connect')
    socket.write(text)
    return { answer: () => received, closed, end: () => socket.destroy() }
  }

  test.each([
    ['what is no HTTP', 'GARBAGE\r\n\r\n', 400],
    ['headers beyond all measure', `GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s is answered in the form of every error', async (_name, text, status) => {
    const { answer, closed } = await send(text)
    await closed
    const [head = '', body = ''] = answer().split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(JSON.parse(body)).toMatchObject({ error: 'bad_request', message: expect.any(String) })
  })

  test('a path that can not be decoded is 400 with an id, like every error', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/%zz`)
    expect({ status: response.status, error: ((await response.json()) as { error: string }).error }).toEqual({
      status: 400,
      error: 'bad_request',
    })
    expect(response.headers.get('x-request-id')).toMatch(/^rq_/)
  })

  test('a client that goes away in the middle of its body is its own trouble: no failure of ours, and none of the database', async () => {
    const head = `POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bench().admin}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
    const { end } = await send(head)
    // The token is looked up before the body is read.
    await until(() => fetch(`http://127.0.0.1:${port}/v1/health`).then((response) => response.ok), 'the server answers')
    end()
    await until(() => lines.some(({ fields }) => (fields as { code?: string }).code === 'bad_request'), 'the request is refused')
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })
})
