// The language of the page: the browser's, unless the user has chosen one.

import { storage } from './storage'

const languages = ['en', 'zh'] as const
export type Language = (typeof languages)[number]

const stored = storage.get('nodest.language')
const preferred: Language = navigator.languages.find((l) => /^(en|zh)/i.test(l))?.toLowerCase().startsWith('zh') ? 'zh' : 'en'

const first = languages.find((l) => l === stored) ?? preferred
let current = $state<Language>(first)
tag(first)

/** tag tells the browser, for fonts, hyphens and screen readers. */
function tag(l: Language) {
  document.documentElement.lang = l === 'zh' ? 'zh-CN' : 'en'
}

export const language = {
  get current() {
    return current
  },
  choose(l: Language) {
    current = l
    storage.set('nodest.language', l)
    tag(l)
  },
}

type Text = string | ((...args: never[]) => string)

/** The shape of T with other texts: each text is there, and takes the same arguments. */
type Same<T> = { readonly [K in keyof T]: T[K] extends string ? string : T[K] }

/**
 * words declares the texts of a part of the page in all languages. Reading one in a
 * template makes it follow the chosen language.
 */
export function words<T extends Record<string, Text | Record<string, Text>>>(en: T, zh: Same<T>): Same<T> {
  return new Proxy(en, { get: (_, name) => Reflect.get(current === 'zh' ? zh : en, name) }) as Same<T>
}
