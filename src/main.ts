#!/usr/bin/env node
/** The entry of the command line and, by `serve`, of the coordinator. */
import { runCli } from './cli/main.ts'

process.exitCode = await runCli(process.argv.slice(2))
