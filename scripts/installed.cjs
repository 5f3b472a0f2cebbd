/** Is node_modules what package-lock.json says? Content decides, not file times: a git checkout changes those at will. */
const fs = require('node:fs')
const path = require('node:path')

const readJson = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}

const isExecutable = (file) => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The checkout's own Node, which `npm run` and bin/leasehold use. */
const ownNode = (root) => path.join(root, 'node_modules', '.bin', 'node')

/**
 * Why an installation is needed, or null. npm writes node_modules/.package-lock.json last, so one that agrees with the
 * lockfile means an installation that came to its end; every package must also still be there.
 * @param {string} root the checkout
 * @returns {string | null}
 */
const whyInstall = (root) => {
  const modules = path.join(root, 'node_modules')
  const wanted = readJson(path.join(root, 'package-lock.json'))?.packages
  if (wanted === undefined) throw new Error(`${path.join(root, 'package-lock.json')} is missing or is no JSON`)
  if (!fs.existsSync(modules)) return 'node_modules is missing'
  const present = readJson(path.join(modules, '.package-lock.json'))?.packages
  if (present === undefined) return 'the last installation did not come to its end'
  for (const [location, entry] of Object.entries(wanted)) {
    if (location === '') continue
    const found = present[location]
    if (found === undefined) {
      // Optional packages are for other platforms.
      if (entry.optional || entry.devOptional) continue
      return `${location} is missing`
    }
    if (found.version !== entry.version || found.integrity !== entry.integrity) return `${location} is not the one of package-lock.json`
    if (!fs.existsSync(path.join(root, location, 'package.json'))) return `${location} is incomplete`
  }
  if ('node_modules/node' in wanted && !isExecutable(ownNode(root))) return 'the Node of the checkout is missing'
  return null
}

module.exports = { whyInstall, isExecutable, ownNode }
