// A zip archive of files, without compression: its parts are the files themselves, so that a large folder needs no
// memory. Each file is read once for its checksum.

export interface Entry {
  path: string
  /** Its content; null = the archive has only the name. */
  file: Blob | null
}

/** Beyond these, an archive would need a form that this one is not. */
export const mostBytes = 0xffff_ffff
export const mostEntries = 0xffff

const table = new Uint32Array(256).map((_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1
  return n >>> 0
})

/** crc32 reads a file for its checksum. */
async function crc32(file: Blob): Promise<number> {
  let crc = 0xffffffff
  const reader = file.stream().getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const bytes = part.value
    for (let i = 0; i < bytes.length; i++) crc = table[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  }
  return (crc ^ 0xffffffff) >>> 0
}

/** fields are numbers of two or four bytes, one after the other. */
function fields(...list: [bytes: 2 | 4, value: number][]): Uint8Array<ArrayBuffer> {
  const out = new DataView(new ArrayBuffer(list.reduce((sum, [n]) => sum + n, 0)))
  let at = 0
  for (const [n, value] of list) {
    if (n === 2) out.setUint16(at, value, true)
    else out.setUint32(at, value, true)
    at += n
  }
  return new Uint8Array(out.buffer)
}

const utf8 = 0x800
const firstDay = 0x21 // 1 January 1980

/** sizeOf is how large the archive of the entries is, in bytes. */
export const sizeOf = (entries: Entry[]) => entries.reduce((sum, e) => sum + (e.file?.size ?? 0) + 76 + 2 * new TextEncoder().encode(e.path).length, 22)

/** zip makes the archive; tell hears how many entries are done. It ends with an error when signal is aborted. */
export async function zip(entries: Entry[], tell: (done: number) => void, signal: AbortSignal): Promise<Blob> {
  const parts: BlobPart[] = []
  const directory: BlobPart[] = []
  let at = 0
  let listed = 0
  for (const [i, { path, file }] of entries.entries()) {
    signal.throwIfAborted()
    const name = new TextEncoder().encode(path)
    const size = file?.size ?? 0
    const crc = file && size > 0 ? await crc32(file) : 0
    const common: [2 | 4, number][] = [[2, 20], [2, utf8], [2, 0], [2, 0], [2, firstDay], [4, crc], [4, size], [4, size], [2, name.length], [2, 0]]
    parts.push(fields([4, 0x04034b50], ...common), name)
    if (file && size > 0) parts.push(file)
    directory.push(fields([4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]), name)
    at += 30 + name.length + size
    listed += 46 + name.length
    if (i % 20 === 0) tell(i)
  }
  tell(entries.length)
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, entries.length], [2, entries.length], [4, listed], [4, at], [2, 0])
  return new Blob([...parts, ...directory, end], { type: 'application/zip' })
}
