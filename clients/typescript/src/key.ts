/** newKey returns a random id for commands, messages and devices; it works on plain HTTP too. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')
}

export const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))
