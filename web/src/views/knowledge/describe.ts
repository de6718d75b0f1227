// Types, languages and lengths of files in words.

import { bytes, number } from '../../lib/format'
import { language } from '../../lib/language.svelte'
import type { KnowledgeFile } from '../../lib/types'
import { fileWords as w } from './fileWords'

/** languageName is the name of a language in the language of the page. */
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames([language.current === 'zh' ? 'zh-CN' : 'en'], { type: 'language' }).of(tag) ?? tag
  } catch {
    return tag
  }
}

export const languages = (tags: string[]) => tags.slice(0, 4).map(languageName).join(', ')

/** facts are what a row tells about a file. */
export const facts = (f: KnowledgeFile) =>
  [
    f.contentType && f.contentType.toUpperCase(),
    bytes(f.size),
    f.chars > 0 && w.chars(number(f.chars)),
    f.language && languageName(f.language),
    f.source === 'web' && w.fromWeb,
  ]
    .filter(Boolean)
    .join(' · ')
