/** One connection to an Engine, whatever way leads to it. */
import { readFileSync } from 'node:fs'
import { connect as connectNet } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { EngineAddress } from './address.ts'
import { connectSsh } from './ssh.ts'

/** Half open: a command in a box whose input has ended still has something to say. @throws where a TLS file can't be read */
export const connectEngine = (address: EngineAddress): Duplex => {
  switch (address.kind) {
    case 'unix':
      return connectNet({ path: address.path, allowHalfOpen: true })
    case 'tcp': {
      const { ca, cert, key } = address.tls
      const options: ConnectionOptions & { allowHalfOpen: true } = {
        host: address.host,
        port: address.port,
        ca: readFileSync(ca),
        cert: readFileSync(cert),
        key: readFileSync(key),
        minVersion: 'TLSv1.2',
        allowHalfOpen: true,
      }
      return connectTls(options)
    }
    case 'ssh':
      return connectSsh(address)
  }
}
