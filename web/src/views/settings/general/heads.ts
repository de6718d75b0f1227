import type { ResourceHead } from '../../../lib/types'
import { attempt } from '../../../lib/notes.svelte'
import { rest } from '../../../state/server'

/** Enough for a menu; nobody chooses from more. */
const most = 1000

/** heads reads the names of the user's personas, presets or world books. */
export async function heads(path: '/personas' | '/presets' | '/worldbooks'): Promise<ResourceHead[]> {
  const list: ResourceHead[] = []
  for (let cursor: string | null = ''; cursor !== null && list.length < most; ) {
    const at: string = cursor
    const page = await attempt(() => rest.get(path, { query: { limit: 200, ...(at && { cursor: at }) } }))
    list.push(...(page?.items ?? []))
    cursor = page?.nextCursor ?? null
  }
  return list
}
