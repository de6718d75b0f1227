// Why a file has failed, and what is remarkable about one that has not, in words.

import { plain } from '../../lib/format'
import { words } from '../../lib/language.svelte'

const failures = words(
  {
    empty_document: 'The file contains no text.',
    unsupported_media_type: 'Files of this type cannot be read.',
    damaged_file: 'The file is damaged.',
    encrypted_document: 'The file is protected by a password. Remove the password and replace the file.',
    no_text_layer: 'The pages are images without text. Run text recognition (OCR) on the file and replace it.',
    undecodable_text: 'The characters of the file cannot be decoded. Save it as UTF-8 and replace it.',
    archive_too_large: 'The file is too large when unpacked.',
    archive_too_many_entries: 'The file has too many parts inside.',
    text_too_long: 'The text is too long. Split the file.',
    too_many_pages: 'The file has too many pages. Split it.',
    parse_timeout: 'Extracting the text took too long.',
    embedding_dimension_mismatch: 'The embedding model answered with vectors of another length than before.',
    upstream_auth: 'The provider of the embedding model refused the key.',
    upstream_quota: 'The account at the provider of the embedding model has no credit or quota left.',
    upstream_rate_limited: 'The provider of the embedding model limits the rate of calls.',
    upstream_unavailable: 'The provider of the embedding model is not available.',
    stalled: 'Processing made no progress and was given up.',
    internal: 'The server could not process the file.',
  } as Record<string, string>,
  {
    empty_document: '文件中没有文本。',
    unsupported_media_type: '无法读取这种类型的文件。',
    damaged_file: '文件已损坏。',
    encrypted_document: '文件有密码保护。请移除密码后替换文件。',
    no_text_layer: '页面是没有文本的图片。请先进行文字识别（OCR），再替换文件。',
    undecodable_text: '无法识别文件的字符编码。请存为 UTF-8 后替换文件。',
    archive_too_large: '文件解压后过大。',
    archive_too_many_entries: '文件内部的部分过多。',
    text_too_long: '文本过长。请拆分文件。',
    too_many_pages: '页数过多。请拆分文件。',
    parse_timeout: '提取文本超时。',
    embedding_dimension_mismatch: '嵌入模型返回的向量长度与之前不同。',
    upstream_auth: '嵌入模型的服务商拒绝了密钥。',
    upstream_quota: '嵌入模型服务商的账户余额或额度已用完。',
    upstream_rate_limited: '嵌入模型的服务商限制了请求频率。',
    upstream_unavailable: '嵌入模型的服务商不可用。',
    stalled: '处理没有进展，已放弃。',
    internal: '服务器无法处理此文件。',
  },
)

/** detailed are the codes whose detail, in English, says more than the words for them. */
const detailed = /^(damaged_file|internal|upstream_.*|embedding_dimension_mismatch)$/

/** failure says why a file has failed. */
export function failure(e: { code: string; detail: string }): string {
  const known = failures[e.code]
  const detail = plain(e.detail.slice(0, 300))
  if (!known) return detail || failures['internal']!
  return detail && detailed.test(e.code) ? `${known} (${detail})` : known
}

const remarks = words(
  {
    lexical_only: 'Found by words only: the server has no embedding model.',
    type_mismatch: (type: string) => `The name does not fit the content: read as ${type}.`,
    without_vector: (n: string) => `${n} chunks are found by words only: the embedding model refused them.`,
    without_context: (n: string) => `${n} chunks have no context line: the model did not write one. Rebuild the index to try again.`,
    some_words_not_indexed: 'The file has too many different words: those that come last are not found by words.',
    damaged: 'The file is damaged; what could be read is there.',
    plain: 'The structure could not be read; the file is searched as plain text.',
  },
  {
    lexical_only: '只能按词语搜索：服务器没有嵌入模型。',
    type_mismatch: (type: string) => `文件名与内容不符：按 ${type} 读取。`,
    without_vector: (n: string) => `有 ${n} 个片段只能按词语搜索：嵌入模型拒绝了它们。`,
    without_context: (n: string) => `有 ${n} 个片段没有说明（context lines）：模型没有写出。重建索引可重试。`,
    some_words_not_indexed: '文件中不同的词过多：靠后的词无法按词语搜索到。',
    damaged: '文件已损坏，保留了可读取的内容。',
    plain: '无法读取结构，按纯文本搜索。',
  },
)

/** remark puts a warning of a file into words. */
export function remark(warning: string): string {
  const [name = '', value = ''] = warning.split(':')
  if (name === 'lexical_only' || name === 'some_words_not_indexed') return remarks[name]
  if (name === 'type_mismatch') return remarks.type_mismatch(plain(value).toUpperCase())
  const without = /^(\d+)_chunks_without_vector$/.exec(name)
  if (without) return remarks.without_vector(without[1]!)
  const bare = /^(\d+)_chunks_without_context$/.exec(name)
  if (bare) return remarks.without_context(bare[1]!)
  if (name.startsWith('damaged_')) return remarks.damaged
  if (/^(broken|malformed|invalid)_/.test(name)) return remarks.plain
  return plain(warning.replaceAll('_', ' '))
}
