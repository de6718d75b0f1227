// How two texts differ, by lines and by words. All views that show or merge versions use it.

import { diffArrays } from 'diff'

/** A part of two lists: the same in both, or elements that stand for others; one side may be empty. */
export interface Hunk {
  same: boolean
  before: string[]
  after: string[]
}

const furthest = 2000 // elements that may differ; what has less in common is replaced as a whole

/** partsOf tells two lists apart. Parts that are the same and parts that differ take turns. */
function partsOf(before: string[], after: string[]): Hunk[] {
  const parts: Hunk[] = []
  for (const run of diffArrays(before, after, { maxEditLength: furthest }) ?? [{ value: before, removed: true, added: false }, { value: after, removed: false, added: true }]) {
    const same = !run.added && !run.removed
    if (parts.at(-1)?.same !== same) parts.push({ same, before: [], after: [] })
    if (!run.added) parts.at(-1)!.before.push(...run.value)
    if (!run.removed) parts.at(-1)!.after.push(...run.value)
  }
  return parts
}

const lines = (text: string) => (text === '' ? [] : text.split('\n'))

/** hunksOf tells two texts apart by lines; an empty text has none. */
export const hunksOf = (before: string, after: string): Hunk[] => partsOf(lines(before), lines(after))

/** merged is the text before with the hunks that are taken. */
export const merged = (hunks: Hunk[], taken: (h: Hunk, index: number) => boolean) => hunks.flatMap((h, i) => (taken(h, i) ? h.after : h.before)).join('\n')

/** A run of words that is the same, or only in one of two texts. */
export interface Words {
  op: 'same' | 'removed' | 'added'
  text: string
}

/** wordsOf tells two texts apart by words; texts that have little in common are replaced as a whole. */
export function wordsOf(old: string, now: string): Words[] {
  const runs = partsOf(tokens(old), tokens(now)).flatMap((p): Words[] =>
    p.same
      ? [{ op: 'same', text: p.after.join('') }]
      : [
          { op: 'removed' as const, text: p.before.join('') },
          { op: 'added' as const, text: p.after.join('') },
        ].filter((run) => run.text !== ''),
  )
  return alike(runs) ? runs : [{ op: 'removed', text: old }, { op: 'added', text: now }]
}

/** alike reports whether enough is the same for the rest to be read word by word. */
function alike(runs: Words[]): boolean {
  let same = 0
  let other = 0
  for (const { op, text } of runs) {
    if (op === 'same') same += text.trim().length
    else other += text.trim().length
  }
  return 3 * same >= other
}

const tokens = (text: string) => text.match(/\p{Script=Han}|[\p{L}\p{N}]+|\s+|[^\p{L}\p{N}\s]/gu) ?? []
