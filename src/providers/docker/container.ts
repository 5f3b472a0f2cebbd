/** The container of a box, as it is asked for. */
import type { CreateRequest } from '../contract.ts'
import type { Image } from './api.ts'
import type { DockerConfig } from './config.ts'
import { labelsOf, partName } from './identity.ts'
import { clockScript } from './scripts.ts'
import { privateFolder } from './words.ts'

const bytes = 2 ** 20

export interface ContainerPlan {
  request: CreateRequest
  config: DockerConfig
  image: Image
  /** Whom commands run as; empty: root. */
  user: string
  /** The id of the box's network. */
  network: string
}

/** What the Engine is asked for. */
export const containerBody = ({ request, config, user, image, network }: ContainerPlan): unknown => {
  const lifetime = Math.max(1, Math.ceil(request.maximumLifetimeSeconds))
  const memory = { [privateFolder]: 'rw,nosuid,nodev,noexec,size=1m,mode=1777' }
  const loose = 'rw,nosuid,nodev,exec,mode=1777'
  return {
    Image: image.Id,
    Hostname: request.name.replaceAll(/[^A-Za-z0-9-]/g, '-').slice(0, 63),
    // The clock is root's, whoever commands run as.
    User: '0:0',
    Entrypoint: ['/bin/sh', '-c', clockScript, 'leasehold', String(lifetime), String(Math.ceil(config.graceSeconds))],
    Cmd: [],
    WorkingDir: config.folder,
    StopSignal: 'SIGTERM',
    Healthcheck: { Test: ['NONE'] },
    // Tags and no secrets: a look at the container shows them.
    Env: [
      `LEASEHOLD_REF=${request.ref}`,
      `LEASEHOLD_INSTALLATION=${request.installation}`,
      `LEASEHOLD_ATTEMPT=${request.attemptToken}`,
      ...(request.leaseId === null ? [] : [`LEASEHOLD_LEASE_ID=${request.leaseId}`]),
    ],
    Labels: labelsOf(request, { network, folder: config.folder, user }),
    HostConfig: {
      NetworkMode: network,
      Mounts: [{ Type: 'volume', Source: partName(request), Target: config.folder, VolumeOptions: { NoCopy: true } }],
      Tmpfs: config.root === 'readonly' ? { ...memory, '/tmp': loose, '/run': loose, '/var/tmp': loose } : memory,
      ReadonlyRootfs: config.root === 'readonly',
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      ...(config.memoryMb === null ? {} : { Memory: config.memoryMb * bytes, MemorySwap: config.memoryMb * bytes }),
      ...(config.cpus === null ? {} : { NanoCpus: Math.round(config.cpus * 1e9) }),
    },
  }
}
