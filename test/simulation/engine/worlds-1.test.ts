import { playPart } from './suite.ts'

playPart(0, 4)
