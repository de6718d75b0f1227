import type { components } from '@nodest/client'

/** Verdict is what became of a sentence of an answer. */
export interface Verdict {
  text: string
  /** Of references. */
  marks: number[]
  /** Why it has no support, for each part that has none. */
  why?: { code: string; fact?: string; part?: string }[]
}

export type Report = components['schemas']['CitationReport'] & { claims?: number; doubtful?: number; verdicts?: Verdict[] }
