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

/** What the server is; for owners also how it is doing. */
export interface Health {
  version: string
  uptimeSeconds: number
  database: 'sqlite' | 'postgres'
  provider: { name: string; model: string; configured: boolean }
  server?: {
    users: number
    connections: number
    generations: number
    queuedJobs: number
    failedJobs: number
    databaseBytes: number
    dataBytes: number
    diskFreeBytes: number
  }
}

export const readHealth = () => rest.get('/health' as never) as Promise<Health>
