/**
 * What `npm start` and `npm test` do first: bring node_modules to what package-lock.json says. A few milliseconds when
 * there is nothing to do. Runs on the bare Node of the machine (20 will do), without dependencies; several may run at once.
 */
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { acquire, stateOf } = require('./install-lock.cjs')
const { whyInstall, isExecutable, ownNode } = require('./installed.cjs')

const root = path.dirname(__dirname)
const lockFolder = path.join(root, '.tmp', 'setup.lock')
const say = (text) => process.stderr.write(`setup: ${text}\n`)

/** The Node that npm runs on must not lie in the folder that `npm ci` deletes. */
const outsidePath = (process.env.PATH ?? '')
  .split(path.delimiter)
  .filter((folder) => folder !== '' && !path.resolve(folder).startsWith(path.join(root, 'node_modules') + path.sep))

const outsideNode = () => outsidePath.map((folder) => path.join(folder, 'node')).find(isExecutable) ?? process.execPath

let lock = null
let child = null
let stopping = null

/** Runs to its end with our output on stderr; throws if it fails. */
const run = (command, args, folder) =>
  new Promise((resolve, reject) => {
    if (stopping !== null) return reject(new Error('stopped'))
    child = spawn(command, args, {
      cwd: folder,
      stdio: ['ignore', 2, 2],
      env: { ...process.env, PATH: outsidePath.join(path.delimiter) },
    })
    if (child.pid !== undefined) lock.share(child.pid)
    child.on('error', reject)
    child.on('close', (code, signal) => {
      child = null
      if (code === 0) resolve()
      else reject(new Error(`${path.basename(command)} ${args.join(' ')} ended with ${signal ?? `status ${code}`}`))
    })
  })

const npmCommand = () => {
  const cli = process.env.npm_execpath ?? ''
  return path.basename(cli) === 'npm-cli.js' && fs.existsSync(cli) ? [outsideNode(), cli] : ['npm']
}

/** npm leaves install scripts out where it was told to (`ignore-scripts`); the only one needed here brings Node. */
const bringNode = async () => {
  const folder = path.join(root, 'node_modules', 'node')
  if (!fs.existsSync(folder)) return
  if (!isExecutable(path.join(folder, 'bin', 'node'))) await run(outsideNode(), ['installArchSpecificPackage.js'], folder)
  if (isExecutable(ownNode(root))) return
  fs.mkdirSync(path.dirname(ownNode(root)), { recursive: true })
  fs.rmSync(ownNode(root), { force: true })
  fs.symlinkSync('../node/bin/node', ownNode(root))
}

const install = async (why) => {
  say(`${why}: running npm ci`)
  // Gone first: it is what says that an installation is complete, and this one isn't until npm writes it again.
  fs.rmSync(path.join(root, 'node_modules', '.package-lock.json'), { force: true })
  const [command, ...first] = npmCommand()
  await run(command, [...first, 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error', '--engine-strict=false'], root)
  await bringNode()
  const still = whyInstall(root)
  if (still !== null) throw new Error(`npm ci came to its end, and still ${still}`)
}

const main = async () => {
  // A lock that is there belongs to an installation that runs or that died on the way: neither is to be trusted yet.
  if (stateOf(lockFolder).state === 'free' && whyInstall(root) === null) return
  lock = await acquire(lockFolder, (pid) => say(`waiting for another installation${pid === null ? '' : ` (pid ${pid})`}`))
  const stop = (signal) => {
    stopping = signal
    child?.kill(signal)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal))
  try {
    const why = lock.interrupted ? 'the last installation was interrupted' : whyInstall(root)
    if (why !== null) await install(why)
  } finally {
    lock.release()
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    say(`${error.message}. Nothing was started; run the same command again once this is solved.`)
    process.exit(1)
  },
)
