/**
 * What `docker stack deploy` takes from a Compose file and drops, or reads otherwise than its writer may think: refused by name, so that nobody
 * believes that it is in force.
 */
import { isMap, type Json, type JsonMap } from '../document.ts'
import type { Problem } from './types.ts'

const ignored = 'a Swarm ignores it'
const limits = 'it is not of this format'

const ofService: Readonly<Record<string, readonly [why: string, fix: string]>> = {
  build: ['a Swarm builds nothing', 'Name an image'],
  cgroup_parent: [ignored, 'Take it out'],
  cgroupns_mode: [ignored, 'Take it out'],
  container_name: ['a Swarm names containers itself', 'Take it out'],
  credential_spec: ['not supported yet', 'Take it out'],
  depends_on: ['a Swarm starts services in no order', 'Take it out, and let the service wait by itself'],
  devices: [ignored, 'Take it out'],
  domainname: [ignored, 'Write it in hostname'],
  expose: [ignored, 'Take it out: services of one network reach each other on every port'],
  external_links: [ignored, 'Use a network that both are in'],
  ipc: [ignored, 'Take it out'],
  links: [ignored, 'Use a network that both are in'],
  mac_address: [ignored, 'Take it out'],
  network_mode: [ignored, 'Use networks'],
  pid: [ignored, 'Take it out'],
  privileged: [ignored, 'Use cap_add'],
  restart: ['it is for single containers', 'Use deploy.restart_policy'],
  security_opt: [ignored, 'Take it out'],
  shm_size: [ignored, 'Use a volume of type tmpfs at /dev/shm'],
  tmpfs: [ignored, 'Use a volume of type tmpfs'],
  userns_mode: [ignored, 'Take it out'],
  extends: ['not supported', 'Use several Compose files, or an alias of YAML'],
  volume_driver: [limits, 'Name the driver at the volume, at the top of the file'],
  volumes_from: [limits, 'Declare the volume at the top of the file, and use it in both'],
  cpu_quota: [limits, 'Use deploy.resources'],
  cpu_shares: [limits, 'Use deploy.resources'],
  cpuset: [limits, 'Use deploy.resources'],
  cpus: [limits, 'Use deploy.resources'],
  mem_limit: [limits, 'Use deploy.resources'],
  mem_reservation: [limits, 'Use deploy.resources'],
  memswap_limit: [limits, 'Use deploy.resources'],
}

/** Of one file, before it is checked against the schema. */
export const refusedKeys = (file: JsonMap): Problem[] =>
  Object.entries(mapOf(file['services'])).flatMap(([name, service]) => {
    const path = ['services', name]
    const found: Problem[] = []
    const refuse = (at: Problem['path'], what: string, why: string, fix: string): void =>
      void found.push({ path: at, message: `${what}: ${why}`, fix, of: 'key' })
    for (const key of Object.keys(mapOf(service))) {
      const reason = Object.hasOwn(ofService, key) ? ofService[key] : undefined
      if (reason) refuse([...path, key], key, reason[0], reason[1])
    }
    for (const [network, given] of Object.entries(mapOf(mapOf(service)['networks']))) {
      for (const key of ['ipv4_address', 'ipv6_address']) {
        if (key in mapOf(given))
          refuse([...path, 'networks', network, key], key, ignored, 'Take it out: a Swarm hands addresses out itself')
      }
    }
    for (const [index, mount] of listOf(mapOf(service)['volumes']).entries()) {
      const at = [...path, 'volumes', index]
      if ('consistency' in mapOf(mount)) refuse([...at, 'consistency'], 'consistency', ignored, 'Take it out')
      const type = mapOf(mount)['type']
      if (type === 'npipe' || type === 'cluster') refuse([...at, 'type'], `type ${type}`, 'not supported', 'Use volume, bind or tmpfs')
    }
    return found
  })

const mapOf = (value: Json | undefined): JsonMap => (isMap(value) ? value : {})
const listOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : [])
