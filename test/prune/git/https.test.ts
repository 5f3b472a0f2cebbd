import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { credentialFor, parseCredentials } from '../../../src/prune/git/credentials.ts'
import { defaultLimits, openRepository, type RepositoryOptions } from '../../../src/prune/git/repository.ts'
import { startGitServer, type GitServer, type GitServerOptions } from '../../support/git-server.ts'
import { makeRepository, scratchFolder } from '../../support/git.ts'
import { serviceOr } from '../../support/services/skip.ts'

const available = (): boolean => {
  try {
    execFileSync('sh', ['-c', 'command -v openssl && test -x "$(git --exec-path)/git-http-backend"'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

serviceOr(
  'git over https',
  available(),
  'apt-get install git openssl',
)('a repository over https', () => {
  let scratch: ReturnType<typeof scratchFolder>
  let server: GitServer | null = null
  let commit: string
  beforeEach(() => {
    scratch = scratchFolder()
    commit = makeRepository(join(scratch.folder, 'ops')).commit({ f: '1' })
  })
  afterEach(async () => {
    await server?.close()
    scratch.remove()
  })

  const serve = async (options: Partial<GitServerOptions> = {}) => {
    server = await startGitServer({ folder: scratch.folder, ...options })
    const running = server
    return {
      running,
      fetch: (changes: Partial<RepositoryOptions> = {}, signal?: AbortSignal) =>
        openRepository({
          url: `${running.url}/ops/.git`,
          cache: join(scratch.folder, 'cache'),
          credential: null,
          limits: defaultLimits,
          environment: running.environment,
          ...changes,
        }).fetch('main', signal),
    }
  }
  const secret = { username: 'bob', password: 'hunter22-pass' }

  it('is fetched with a credential that is in no command line, and asked for without a prompt', async () => {
    const { fetch, running } = await serve({ basic: 'bob:hunter22-pass' })
    expect(await fetch({ credential: secret })).toMatchObject({ ok: true, commit })
    expect(running.commandLines()).toContain('git-remote-https')
    expect(running.commandLines()).not.toMatch(/hunter22|Ym9iOmh1bnRlcjIy/)
    expect(await fetch({ cache: join(scratch.folder, 'c2') })).toEqual({ ok: false, message: 'it needs a credential, or is not there' })
    const wrong = await fetch({ cache: join(scratch.folder, 'c3'), credential: { ...secret, password: 'hunter22-wrong' } })
    expect(wrong).toEqual({ ok: false, message: 'the credential for it is not accepted' })
  })

  it('follows no redirect, so that a credential goes nowhere else', async () => {
    const { fetch, running } = await serve({
      instead: (request, response) => {
        if (request.url?.startsWith('/elsewhere')) return false
        response.writeHead(301, { location: `/elsewhere${request.url}` }).end()
        return true
      },
    })
    expect((await fetch({ credential: secret })).ok).toBe(false)
    expect(running.requests().filter((one) => one.includes('elsewhere'))).toEqual([])
  })

  it('refuses a server whose certificate nobody vouches for', async () => {
    const { fetch } = await serve()
    expect((await fetch()).ok).toBe(true)
    const result = await fetch({ cache: join(scratch.folder, 'c2'), environment: { PATH: process.env['PATH'] } })
    expect(result.ok).toBe(false)
  })

  it('takes a page of a host in maintenance for a failure, and never for a repository without files (case C1)', async () => {
    const { fetch } = await serve({
      instead: (_, response) => (response.writeHead(200, { 'content-type': 'text/html' }).end('<html>maintenance</html>'), true),
    })
    expect((await fetch()).ok).toBe(false)
  })

  it('gives up on a server that does not answer, and at once when it is told to', async () => {
    const { fetch } = await serve({ instead: () => true })
    expect(await fetch({ limits: { ...defaultLimits, timeoutMs: 1500 } })).toEqual({ ok: false, message: 'git did not end within 1.5 s' })
    expect(await fetch({}, AbortSignal.timeout(500))).toEqual({ ok: false, message: 'stopped' })
  })

  it('shows nothing of what a server sends to a terminal but one plain line', async () => {
    const { fetch } = await serve({
      instead: (_, response) => (response.writeHead(500, { 'content-type': 'text/plain' }).end('\u001b[31mpassword=hunter22\n'), true),
    })
    const result = await fetch()
    expect(result.ok ? '' : result.message).not.toMatch(/hunter22|\p{Cc}/u)
    expect(result.ok).toBe(false)
  })
})

it('a credential is for its host and what lies below its path, and no other', () => {
  const parsed = parseCredentials('# c\nhttps://a:p%40x@example.org\nhttps://b:q@example.org/team\n')
  const lines = parsed.ok ? parsed.lines : []
  expect(credentialFor('https://example.org/x.git', lines)).toEqual({ username: 'a', password: 'p@x' })
  expect(credentialFor('https://example.org/team/x.git', lines)?.username).toBe('b')
  expect(credentialFor('https://example.org/teams/x.git', lines)?.username).toBe('a')
  expect(credentialFor('https://example.org.evil.org/x', lines)).toBeNull()
  expect(credentialFor('https://example.org:8443/x', lines)).toBeNull()
  expect(credentialFor('/srv/x', lines)).toBeNull()
})

it.each(['http://a:hunter22@h', 'https://h', 'hunter22', 'https://a@h', 'https://a:hunter22%0ax@h'])(
  'a line of credentials that is none is named by its number only',
  (line) => {
    const parsed = parseCredentials(`https://a:b@h\n${line}`)
    expect(parsed).toMatchObject({ ok: false, line: 2 })
    expect(JSON.stringify(parsed)).not.toContain('hunter22')
  },
)
