import { playPart } from './suite.ts'

playPart(2, 4)
