// Calls about the server. Their paths are cast: openapi.yaml of this branch does not
// have them yet.

import type { Job } from '../../../lib/types'
import { rest } from '../../../state/server'

export interface JobsPage {
  items: Job[]
  nextCursor: string | null
}

export const jobsPage = (state: string, cursor: string | null) =>
  rest.get('/jobs' as never, { query: { limit: 50, ...(state && { state }), ...(cursor && { cursor }) } } as never) as Promise<JobsPage>

export const retryJob = (id: string) => rest.post('/jobs/{id}/retry' as never, { path: { id } } as never) as Promise<Job>

/** health is undefined where the server has no such call. */
export type Health = Record<string, unknown>
export const readHealth = () => rest.get('/health' as never) as Promise<Health>
