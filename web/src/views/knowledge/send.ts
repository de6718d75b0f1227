// Uploads that tell how far they are, which fetch does not.

import { Failure, newKey } from '@nodest/client'
import { deviceId } from '../../state/server'

/** Sending is an upload under way. */
export interface Sending<T> {
  done: Promise<T>
  cancel: () => void
}

/**
 * send sends a form. A failure is a Failure; one that was cancelled has the code
 * cancelled. The same key may be used again for the same form.
 */
export function send<T>(method: 'POST' | 'PUT', url: string, form: FormData, options: { key?: string; ifMatch?: number; progress?: (share: number) => void } = {}): Sending<T> {
  const request = new XMLHttpRequest()
  const done = new Promise<T>((resolve, reject) => {
    request.open(method, url)
    request.responseType = 'json'
    request.setRequestHeader('Accept', 'application/json')
    request.setRequestHeader('X-Device-Id', deviceId)
    request.setRequestHeader('Idempotency-Key', options.key ?? newKey())
    if (options.ifMatch !== undefined) request.setRequestHeader('If-Match', `"${options.ifMatch}"`)
    request.upload.onprogress = (e) => e.lengthComputable && options.progress?.(e.loaded / e.total)
    request.upload.onload = () => options.progress?.(1)
    request.onload = () => {
      const { status, response } = request
      if (status >= 200 && status < 300 && response) return resolve(response as T)
      const retry = status === 429 ? 'later' : status >= 500 ? 'same' : 'no'
      reject(new Failure(response?.code ? response : { code: status === 413 ? 'too_large' : 'internal', status, retry, detail: `The server answered ${status}.` }))
    }
    request.onerror = () => reject(new Failure({ code: 'network', detail: 'Cannot reach the server.', retry: 'same' }))
    request.onabort = () => reject(new Failure({ code: 'cancelled', detail: 'Cancelled.' }))
    request.send(form)
  })
  return { done, cancel: () => request.abort() }
}
