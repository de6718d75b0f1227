import { expect, test } from 'vitest'
import { isLocal, presetOf, presets } from './presets'

test('presets are what the server accepts', () => {
  expect(new Set(presets.map((p) => p.name)).size).toBe(presets.length)
  for (const p of presets) {
    expect(p.name).toMatch(/^[a-z][a-z0-9-]{1,30}$/)
    expect(['gemini', 'openrouter', 'openai', 'offline', 'jina']).not.toContain(p.name)
    const url = new URL(p.baseUrl)
    expect(url.username + url.search + url.hash).toBe('')
    expect(p.baseUrl).not.toMatch(/\/$/)
    // Keys go through TLS, except on the same computer.
    expect(url.protocol).toBe(isLocal(p.baseUrl) ? 'http:' : 'https:')
    expect(p.keys === undefined).toBe(isLocal(p.baseUrl))
    if (p.keys) expect(new URL(p.keys).protocol).toBe('https:')
  }
})

test('presets are found by name', () => {
  expect(presetOf('ollama')?.label).toBe('Ollama')
  expect(presetOf('mine')).toBeUndefined()
})
