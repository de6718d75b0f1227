import { number } from '../../lib/format'
import { researchWords as w } from './words'

/** duration writes seconds as minutes and seconds. */
export function duration(seconds: number): string {
  const s = Math.round(seconds)
  return s < 60 ? w.secondsShort(number(s)) : w.minutes(number(Math.floor(s / 60)), s % 60 ? number(s % 60) : '')
}
