import { expect, test } from 'vitest'
import { entriesOf, userFolder } from './folder'
import { sizeOf, zip } from './zip'

const files = [
  { path: 'characters/塔.json', file: new Blob(['123456789']) },
  { path: 'secrets.json', file: null },
]

test('the archive has each file with its checksum, and is as large as was said', async () => {
  const told: number[] = []
  const made = await zip(files, (n) => told.push(n), new AbortController().signal)
  expect(made.size).toBe(sizeOf(files))
  expect(told.at(-1)).toBe(2)
  const bytes = new DataView(await made.arrayBuffer())
  expect(bytes.getUint32(0, true)).toBe(0x04034b50)
  expect(bytes.getUint32(14, true)).toBe(0xcbf43926) // the checksum of 123456789
  expect(bytes.getUint16(made.size - 12, true)).toBe(2)
  expect(bytes.getUint32(bytes.getUint32(made.size - 6, true), true)).toBe(0x02014b50)
})

test('an archive that is no longer wanted is not made', async () => {
  const stopped = AbortSignal.abort()
  await expect(zip(files, () => {}, stopped)).rejects.toThrow()
})

test('the folder of the user is found in that of the program', () => {
  expect(userFolder(['ST/package.json', 'ST/data/default-user/characters/a.png', 'ST/data/default-user/settings.json', 'ST/public/scripts/x.js'])).toBe('ST/data/default-user/')
  expect(userFolder(['default-user/chats/a/b.jsonl'])).toBe('default-user/')
  expect(userFolder(['pictures/a.png'])).toBe(undefined)
})

test('nothing of what is never taken is read', () => {
  const file = new File(['x'], 'x')
  const got = entriesOf([
    { path: 'u/secrets.json', file },
    { path: 'u/thumbnails/bg/a.jpg', file },
    { path: 'u/characters/a.png', file },
    { path: 'elsewhere/b.png', file },
  ], 'u/')
  expect(got.map((e) => [e.path, e.file !== null])).toEqual([['secrets.json', false], ['thumbnails/bg/a.jpg', false], ['characters/a.png', true]])
})
