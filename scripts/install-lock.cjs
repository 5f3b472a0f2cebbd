/**
 * One installer at a time per checkout. The lock is a folder (making one is atomic) with a file that says who holds it;
 * a holder that died is recognised by its pid, start time and boot. Runs on any Node from 16 on, without dependencies.
 */
const fs = require('node:fs')
const path = require('node:path')

/** A holder that has not written its name after this long died between two system calls. */
const namelessMs = 5_000
const pollMs = 100
const holdersFile = 'holders.json'

const readOr = (file, fallback) => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return fallback
  }
}

/** When the process began, in the kernel's words: a pid alone is used again. Empty where there is no /proc. */
const startOf = (pid) => {
  const stat = readOr(`/proc/${pid}/stat`, '')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}
const boot = () => readOr('/proc/sys/kernel/random/boot_id', '').trim()

const describe = (pid) => ({ pid, start: startOf(pid), boot: boot() })

const isAlive = ({ pid, start, boot: itsBoot }) => {
  if (itsBoot !== boot()) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (error.code !== 'EPERM') return false
  }
  return start === startOf(pid)
}

/** `free`, `held`, or `stale`: its holder died. */
const stateOf = (folder) => {
  let ageMs
  try {
    ageMs = Date.now() - fs.statSync(folder).mtimeMs
  } catch {
    return { state: 'free', pid: null }
  }
  try {
    const holders = JSON.parse(readOr(path.join(folder, holdersFile), ''))
    const alive = holders.find(isAlive)
    return alive === undefined ? { state: 'stale', pid: null } : { state: 'held', pid: alive.pid }
  } catch {
    return { state: ageMs > namelessMs ? 'stale' : 'held', pid: null }
  }
}

const writeHolders = (folder, pids) => {
  const file = path.join(folder, holdersFile)
  fs.writeFileSync(`${file}.new`, JSON.stringify(pids.map(describe)))
  fs.renameSync(`${file}.new`, file)
}

const make = (folder) => {
  try {
    fs.mkdirSync(folder)
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
  writeHolders(folder, [process.pid])
  return true
}

const remove = (folder) => fs.rmSync(folder, { recursive: true, force: true })

/**
 * Removes a stale lock under a second one, so that of two that see it stale neither removes the fresh lock of the other.
 * The second lock is held for the time of a few system calls; one that is older than that is swept away.
 */
const removeStale = (folder) => {
  const breaker = `${folder}.break`
  if (!make(breaker)) {
    if (stateOf(breaker).state === 'stale') remove(breaker)
    return false
  }
  try {
    if (stateOf(folder).state !== 'stale') return false
    remove(folder)
    return true
  } finally {
    remove(breaker)
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Waits for the lock. `interrupted` says that an earlier holder died on the way; `share` keeps it held for as long as that
 * child lives, because a `kill -9` of this process does not end its npm.
 * @returns {Promise<{interrupted: boolean, share: (pid: number) => void, release: () => void}>}
 */
const acquire = async (folder, onWait) => {
  fs.mkdirSync(path.dirname(folder), { recursive: true })
  let interrupted = false
  let told = false
  while (!make(folder)) {
    const { state, pid } = stateOf(folder)
    if (state === 'stale') {
      interrupted = removeStale(folder) || interrupted
      if (!interrupted) await sleep(pollMs)
      continue
    }
    if (state === 'held' && !told) {
      told = true
      onWait(pid)
    }
    await sleep(pollMs)
  }
  return {
    interrupted,
    share: (pid) => writeHolders(folder, [process.pid, pid]),
    release: () => remove(folder),
  }
}

module.exports = { acquire, stateOf }
