import { playPart } from './suite.ts'

playPart(1, 4)
