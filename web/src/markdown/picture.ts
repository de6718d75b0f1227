// Pictures that are embedded in a text, as data: URLs.

export const maxLength = 1_000_000 // characters
const maxPixels = 2_000_000

/**
 * small returns whether a picture that is in a text may be shown: only small ones of kinds
 * whose size can be read, as a few bytes can be a picture that fills the memory.
 */
export function small(href: string): boolean {
  const data = /^data:image\/(?:png|gif|webp|jpeg);base64,([a-z\d+/]{40,})={0,2}$/i.exec(href)?.[1]
  if (!data || data.length > maxLength) return false
  const bytes = Uint8Array.from(atob(data.slice(0, data.length - (data.length % 4))), (c) => c.charCodeAt(0))
  const [width, height] = dimensions(bytes)
  return width > 0 && height > 0 && width * height <= maxPixels
}

/** dimensions reads the width and height of a picture; 0 if they are not found. */
function dimensions(bytes: Uint8Array): [number, number] {
  const v = new DataView(bytes.buffer)
  const name = (at: number) => String.fromCharCode(...bytes.slice(at, at + 4))
  if (name(0) === '\x89PNG' && name(12) === 'IHDR') return [v.getUint32(16), v.getUint32(20)]
  if (name(0) === 'GIF8') return [v.getUint16(6, true), v.getUint16(8, true)]
  if (name(0) === 'RIFF' && name(12) === 'VP8 ') return [v.getUint16(26, true) & 0x3fff, v.getUint16(28, true) & 0x3fff]
  if (name(0) === 'RIFF' && name(12) === 'VP8L') return [(v.getUint32(21, true) & 0x3fff) + 1, ((v.getUint32(21, true) >> 14) & 0x3fff) + 1]
  if (name(0) === '\xff\xd8\xff' + name(0)[3]) {
    for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + v.getUint16(at + 2)) {
      const kind = bytes[at + 1]!
      if (kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind)) return [v.getUint16(at + 7), v.getUint16(at + 5)]
    }
  }
  return [0, 0]
}
