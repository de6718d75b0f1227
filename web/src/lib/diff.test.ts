import { expect, test } from 'vitest'
import { hunksOf, merged, wordsOf } from './diff'

const before = 'Mia keeps bees.\n\nShe lives in Oslo.\nShe likes tea.'
const after = 'Mia keeps bees and hens.\n\nShe lives in Oslo.\nShe likes tea.\nShe reads.'

test('hunks are the lines that stand for others, between lines that are the same', () => {
  expect(hunksOf(before, after)).toEqual([
    { same: false, before: ['Mia keeps bees.'], after: ['Mia keeps bees and hens.'] },
    { same: true, before: ['', 'She lives in Oslo.', 'She likes tea.'], after: ['', 'She lives in Oslo.', 'She likes tea.'] },
    { same: false, before: [], after: ['She reads.'] },
  ])
})

test('the hunks that are taken change the text, the others leave it', () => {
  const hunks = hunksOf(before, after)
  expect(merged(hunks, () => false)).toBe(before)
  expect(merged(hunks, () => true)).toBe(after)
  expect(merged(hunks, (_, i) => i === 2)).toBe(before + '\nShe reads.')
})

test('an empty text has no lines, and equal texts have no hunk that differs', () => {
  expect(hunksOf('', 'a')).toEqual([{ same: false, before: [], after: ['a'] }])
  expect(hunksOf('', '')).toEqual([])
  expect(hunksOf(before, before).some((h) => !h.same)).toBe(false)
})

test('words are told apart, also those without spaces between them', () => {
  expect(wordsOf('Mia keeps bees.', 'Mia keeps hens.')).toEqual([
    { op: 'same', text: 'Mia keeps ' },
    { op: 'removed', text: 'bees' },
    { op: 'added', text: 'hens' },
    { op: 'same', text: '.' },
  ])
  expect(wordsOf('渡船九点开', '渡船十点开').map((run) => run.op + run.text)).toEqual(['same渡船', 'removed九', 'added十', 'same点开'])
})

test('texts that have little in common are replaced as a whole', () => {
  expect(wordsOf('It rains.', 'Mia keeps nine hives on the roof')).toEqual([
    { op: 'removed', text: 'It rains.' },
    { op: 'added', text: 'Mia keeps nine hives on the roof' },
  ])
})
