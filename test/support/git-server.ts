/** Git over https, by git's own http-backend behind a certificate of our own. */
import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

export interface GitServer {
  /** `https://localhost:<port>` */
  url: string
  /** What a client needs to trust it. */
  environment: Record<string, string>
  /** Command lines of all processes that were seen while requests were served. */
  commandLines: () => string
  requests: () => string[]
  close: () => Promise<void>
}

export interface GitServerOptions {
  /** Holds the repositories and the key. */
  folder: string
  /** `user:password`; anything else is answered with 401. */
  basic?: string
  /** Answers in place of the backend; true: it did. */
  instead?: (request: IncomingMessage, response: ServerResponse) => boolean
}

export const startGitServer = async ({ folder, basic, instead }: GitServerOptions): Promise<GitServer> => {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', cert, ...subject],
    { stdio: 'pipe' },
  )
  let seen = ''
  const requests: string[] = []
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    seen += allCommandLines()
    if (instead?.(request, response)) return
    const given = request.headers.authorization
    if (basic !== undefined && given !== `Basic ${Buffer.from(basic).toString('base64')}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="t"' }).end()
      return
    }
    backend(folder, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    environment: { PATH: process.env['PATH'] ?? '', GIT_SSL_CAINFO: cert },
    commandLines: () => seen,
    requests: () => requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const allCommandLines = (): string =>
  readdirSync('/proc')
    .filter((one) => /^\d+$/.test(one))
    .map((one) => {
      try {
        return readFileSync(`/proc/${one}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .join('\n')

const backend = (folder: string, request: IncomingMessage, response: ServerResponse): void => {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const child = spawn('git', ['-c', 'safe.directory=*', 'http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
  })
  request.pipe(child.stdin)
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => void parts.push(part))
  child.on('close', () => {
    const whole = Buffer.concat(parts)
    const end = whole.indexOf('\r\n\r\n')
    const headers = whole
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(': ') as [string, string])
    const status = headers.find(([name]) => name === 'Status')?.[1]
    response.writeHead(
      status === undefined ? 200 : Number(status.split(' ')[0]),
      Object.fromEntries(headers.filter(([name]) => name !== 'Status')),
    )
    response.end(whole.subarray(end + 4))
  })
}
