import { playPart } from './suite.ts'

playPart(3, 4)
