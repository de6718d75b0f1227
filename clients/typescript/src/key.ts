/** newKey returns a random id for commands, messages and devices; it works on plain HTTP too. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')
}

/** pause waits; a signal ends it, and the call that follows sees it. */
export const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((done) => {
    const over = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', over)
      done()
    }
    const timer = setTimeout(over, ms)
    signal?.addEventListener('abort', over)
  })
