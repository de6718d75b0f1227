// Dates, sizes and numbers in the language of the page.

import { withoutStars } from '../markdown/emphasis'
import { language } from './language.svelte'

const locale = () => (language.current === 'zh' ? 'zh-CN' : navigator.languages.find((l) => l.startsWith('en')) ?? 'en')

/** time is the hour today, the day this year, and else the date. */
export function time(at: string | number, now = new Date()): string {
  const date = new Date(at)
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString(locale(), { timeStyle: 'short' })
  if (date.getFullYear() === now.getFullYear()) return date.toLocaleDateString(locale(), { month: 'short', day: 'numeric' })
  return date.toLocaleDateString(locale(), { year: 'numeric', month: 'short', day: 'numeric' })
}

export const full = (at: string | number) => new Date(at).toLocaleString(locale(), { dateStyle: 'medium', timeStyle: 'short' })

/** finer tells more than time: the second today, and else the day with its time. */
export function finer(at: string | number, now = new Date()): string {
  const date = new Date(at)
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString(locale(), { timeStyle: 'medium' })
  return date.toLocaleString(locale(), { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' })
}

/** second is the date with the time to the second. */
export const second = (at: string | number) => new Date(at).toLocaleString(locale(), { dateStyle: 'medium', timeStyle: 'medium' })

/** day is the date; with utc, of a whole day that is the same in every time zone. */
export const day = (at: string | number, utc = false) => new Date(at).toLocaleDateString(locale(), { dateStyle: 'long', ...(utc && { timeZone: 'UTC' }) })

/** date is the short date of a whole day that is the same in every time zone. */
export const date = (at: string) => new Date(at).toLocaleDateString(locale(), { dateStyle: 'medium', timeZone: 'UTC' })

/** hour is the time of the day. */
export const hour = (at: string | number) => new Date(at).toLocaleTimeString(locale(), { timeStyle: 'short' })

export const number = (n: number, digits = 0) => n.toLocaleString(locale(), { maximumFractionDigits: digits })

/** percent writes a share of one. */
export const percent = (n: number, digits = 0) => n.toLocaleString(locale(), { style: 'percent', maximumFractionDigits: digits })

export const dollars = (n: number) => n.toLocaleString(locale(), { style: 'currency', currency: 'USD', maximumFractionDigits: n < 1 ? 4 : 2 })

export function bytes(n: number): string {
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (n < 1000 || unit === 'GB') return number(n, n < 10 && unit !== 'B' ? 1 : 0) + ' ' + unit
    n /= 1024
  }
  return ''
}

export function milliseconds(ms: number): string {
  return ms < 1000 ? number(ms) + ' ms' : number(ms / 1000, 1) + ' s'
}

/** sentences puts sentences in a row; those that are empty are left out. */
export const sentences = (...all: string[]) => all.filter(Boolean).join(language.current === 'zh' ? '' : ' ')

/** glimpse is the beginning of a message in one line, without the marks of its format. */
export const glimpse = (text: string) => plain(withoutStars(text).replace(/`+(?=\S)|(?<=\S)`+|~~|^(#{1,6}|>) +/gm, ''))

/**
 * plain makes foreign text fit for one line of the page: characters that reverse or
 * hide what follows are taken out.
 */
export const plain = (text: string) => oneLine(text.slice(0, 2000)).trim()

/** oneLine is plain that keeps the length. */
export const oneLine = (text: string) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, ' ')
