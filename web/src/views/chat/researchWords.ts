import { words } from '../../lib/language.svelte'

export const researchWords = words(
  {
    menu: 'Research a question…',
    title: 'Research a question',
    question: 'What is to be found out?',
    hint: 'The question is researched in the background, with what was said here. The answer comes as a message. You can also write /research and the question.',
    start: 'Start',
    usage: 'Write the question behind /research.',
    running: 'Researching',
    queued: 'Waiting to research',
    show: 'Show',
    failed: 'The research has failed.',
    report: 'Report of the research',
    doubt: 'no source',
  },
  {
    menu: '研究一个问题…',
    title: '研究一个问题',
    question: '想弄清楚什么？',
    hint: '问题会结合此处的对话在后台研究，回答将作为消息出现。也可以输入 /research 加问题。',
    start: '开始',
    usage: '请在 /research 后面写上问题。',
    running: '正在研究',
    queued: '等待研究',
    show: '查看',
    failed: '研究失败。',
    report: '研究报告',
    doubt: '无来源',
  },
)
