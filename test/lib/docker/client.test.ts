/** The client of an Engine: the ways to one, the version, and what becomes of failures. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { parseAddress } from '../../../src/lib/docker/address.ts'
import { createEngineClient, type EngineClient } from '../../../src/lib/docker/client.ts'
import { EngineError, EngineUnreachable } from '../../../src/lib/docker/errors.ts'
import { runExec } from '../../../src/lib/docker/exec.ts'
import { byHand } from '../../providers/docker/support.ts'
import { dockerEngine, withDocker } from '../../support/services/docker-suite.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const soon = (): AbortSignal => AbortSignal.timeout(30_000)
let folder: string
const clients: EngineClient[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-client-'))
})
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
  rmSync(folder, { recursive: true, force: true })
})
const clientOf = (...address: Parameters<typeof parseAddress>): EngineClient => {
  const client = createEngineClient(parseAddress(...address))
  clients.push(client)
  return client
}

describe('a client of an Engine', () => {
  /** Something that answers as it is told, at a socket of its own. */
  const answering = async (answers: (path: string) => { status?: number; headers?: Record<string, string>; body?: unknown } | null) => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      const answer = answers(request.url ?? '')
      if (answer === null) return
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
      response.end(JSON.stringify(answer.body ?? {}))
    })
    const path = join(folder, 'sock')
    await new Promise<void>((resolve) => server.listen(path, resolve))
    return { client: clientOf(`unix://${path}`, null), asked, close: () => (server.closeAllConnections(), server.close()) }
  }

  it.each([
    ['1.41', '1.41'],
    ['1.40', '1.40'],
    ['1.99', '1.47'],
    ['2.0', '1.47'],
  ])('speaks with an Engine of API %s in %s, and asks for that once', async (theirs, spoken) => {
    const { client, asked, close } = await answering(() => ({ headers: { 'api-version': theirs } }))
    await Promise.all([1, 2].map(() => client.call({ method: 'GET', path: '/info', signal: soon() })))
    expect(asked).toEqual(['/_ping', `/v${spoken}/info`, `/v${spoken}/info`])
    close()
  })

  it('refuses one that is too old, and what is no Engine, with a word about it', async () => {
    const old = await answering(() => ({ headers: { 'api-version': '1.39' } }))
    await expect(old.client.version(soon())).rejects.toThrow(/speaks API 1\.39, and at least 1\.40/)
    old.close()
    const other = await answering(() => ({}))
    await expect(other.client.version(soon())).rejects.toThrow(/no Docker Engine/)
    other.close()
  })

  it("tells the Engine's no from no answer, and shows no secret of either", async () => {
    let answer: { status?: number; body?: unknown; headers?: Record<string, string> } | null = { headers: { 'api-version': '1.41' } }
    const { client, close } = await answering(() => answer)
    await client.version(soon())
    answer = { status: 409, body: { message: 'in use, password=canary' } }
    const no = await client.call({ method: 'DELETE', path: '/volumes/x', signal: soon() }).catch((error: unknown) => error)
    expect(no).toBeInstanceOf(EngineError)
    expect(no).toMatchObject({ status: 409, message: expect.stringContaining('DELETE /volumes/x: in use') })
    expect(String(no)).not.toContain('canary')
    answer = null
    const silence = await client
      .call({ method: 'POST', path: '/x', body: { Env: ['TOKEN=canary'] }, signal: soon(), limitMs: 50 })
      .catch((error: unknown) => error)
    expect(silence).toBeInstanceOf(EngineUnreachable)
    expect(String(silence)).toMatch(/none came to POST \/x/)
    expect(String(silence)).not.toContain('canary')
    close()
    const gone = await clientOf('unix:///no/such.sock', null)
      .version(soon())
      .catch((error: unknown) => error)
    expect(gone).toMatchObject({ reason: 'ENOENT', message: expect.stringContaining('unix:///no/such.sock') })
  })

  it("ends with its caller's own reason", async () => {
    const { client, close } = await answering((path) => (path === '/_ping' ? { headers: { 'api-version': '1.41' } } : null))
    await client.version(soon())
    const reason = new Error('enough')
    const own = new AbortController()
    const call = client.call({ method: 'GET', path: '/info', signal: own.signal })
    setImmediate(() => own.abort(reason))
    await expect(call).rejects.toBe(reason)
    close()
  })
})

withDocker('the ways to an Engine', () => {
  it('TLS with certificates leads there, also into a container, and without the right ones it does not', async () => {
    const engine = await dockerEngine()
    const client = clientOf(engine.tcp, engine.tls)
    expect(await client.version(soon())).toMatch(/^1\.\d+$/)
    const hand = byHand(engine)
    const container = await hand.stranger()
    const input = 'x'.repeat(300_000)
    expect(await runExec(client, container, { command: ['/bin/cat'], input }, soon())).toEqual({ status: 0, stdout: input, stderr: '' })
    await hand.call('DELETE', `/containers/${container}?force=1`)
    hand.close()
    // Somebody else's certificate, and an authority that did not vouch for the Engine.
    const strange = join(folder, 'strange')
    const { execFileSync } = await import('node:child_process')
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        `${strange}.key`,
        '-out',
        `${strange}.pem`,
        '-days',
        '1',
        '-subj',
        '/CN=x',
      ],
      { stdio: 'ignore' },
    )
    await expect(clientOf(engine.tcp, { ...engine.tls, cert: `${strange}.pem`, key: `${strange}.key` }).version(soon())).rejects.toThrow(
      EngineUnreachable,
    )
    await expect(clientOf(engine.tcp, { ...engine.tls, ca: `${strange}.pem` }).version(soon())).rejects.toThrow(
      /self.signed|certificate|issuer/i,
    )
    await expect(clientOf(engine.tcp, { ...engine.tls, key: '/no/such.key' }).version(soon())).rejects.toThrow(/no\/such\.key/)
  })

  it('SSH leads there by "docker system dial-stdio", and its own words are the reason where it does not', async () => {
    const engine = await dockerEngine()
    // Stands for ssh and for the machine behind it: runs what a shell there would, and says what it was asked for.
    const log = join(folder, 'asked')
    writeFileSync(
      join(folder, 'ssh'),
      `#!/bin/sh\nprintf '%s\\n' "$*" >> '${log}'\nwhile [ "$1" != -- ]; do shift; done\n[ "$2" != nobody.example ] || { echo "nobody.example: no such host" >&2; exit 255; }\nexec sh -c "$3"\n`,
    )
    chmodSync(join(folder, 'ssh'), 0o755)
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`)
    const client = clientOf(`ssh://ci@far.example${engine.host.replace('unix://', '')}`, null)
    const { body } = await client.call<{ ServerVersion: string }>({ method: 'GET', path: '/info', signal: soon() })
    expect(body.ServerVersion).toBe(engine.version)
    const hand = byHand(engine)
    const container = await hand.stranger()
    const input = 'x'.repeat(300_000)
    expect(await runExec(client, container, { command: ['/bin/sh', '-c', 'cat; exit 4'], input }, soon())).toEqual({
      status: 4,
      stdout: input,
      stderr: '',
    })
    await hand.call('DELETE', `/containers/${container}?force=1`)
    hand.close()
    await expect(clientOf('ssh://nobody.example', null).version(soon())).rejects.toThrow(/no such host/)
    vi.unstubAllEnvs()
  })
})
