import type { components } from './generated.js'

type Problem = components['schemas']['Problem']

/** A code of the server, or "network": the server was not reached. */
export type Code = Problem['code'] | 'network'

/** Failure is a call or a command that failed. Its message is in English, for people. */
export class Failure extends Error {
  readonly code: Code
  /** HTTP status; 0 if the server was not reached. */
  readonly status: number
  /** Advice on trying again: never, with the same key, or later. */
  readonly retry: Problem['retry']
  readonly retryAfterMs: number
  /** The fields that are wrong. */
  readonly errors: NonNullable<Problem['errors']>
  readonly details: Record<string, unknown>

  constructor(problem: { code: Code; detail: string } & Partial<Omit<Problem, 'code' | 'detail' | 'retryAfterMs'>> & { retryAfterMs?: number | null }) {
    super(problem.detail)
    this.name = 'Failure'
    this.code = problem.code
    this.status = problem.status ?? 0
    this.retry = problem.retry ?? 'no'
    this.retryAfterMs = problem.retryAfterMs ?? 0
    this.errors = problem.errors ?? []
    this.details = problem.details ?? {}
  }
}

/** failureOf reads the problem in an answer. */
export async function failureOf(answer: Response): Promise<Failure> {
  const problem = await answer.json().catch(() => null)
  if (problem?.code) return new Failure(problem)
  // A proxy has answered: the server did not get the call, or its answer was lost.
  const { status } = answer
  const retry = status === 429 ? 'later' : status >= 500 ? 'same' : 'no'
  const code = ({ 401: 'unauthenticated', 413: 'too_large', 429: 'rate_limited' } as const)[status] ?? 'internal'
  return new Failure({ code, status, retry, retryAfterMs: 1000 * Number(answer.headers.get('Retry-After')) || 0, detail: `The server answered ${status}.` })
}
