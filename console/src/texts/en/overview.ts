import { count, counted } from './counted.ts';

export const overview = {
  title: 'Overview',
  hello: (name: string) => `Hello, ${name}`,
  first: 'First five minutes',
  firstLead: 'Five things that make a cloud. Each is ticked off when it is done.',
  doneCount: (done: number, all: number) => `${done} of ${all} done`,
  steps: {
    upload: ['Upload a file', 'Drop one anywhere on this page. A bucket is made when there is none.'],
    machine: ['Start a machine', 'A Linux with a console in this tab, in about a minute.'],
    database: ['Make a database', 'SQLite, PostgreSQL, MySQL or MongoDB, in seconds.'],
    key: ['Make an access key', 'For a program of yours, with no more rights than it needs.'],
    point: ['Take a recovery point', 'The whole cloud, to be had back when this machine is lost.'],
  },
  chooseFile: 'Choose a file',
  openRecovery: 'Open recovery',
  glance: {
    title: 'What there is',
    inBuckets: (buckets: number) => `in ${counted(buckets, 'bucket')}`,
    running: (machines: number) => `${count(machines)} running`,
    take: (size: string) => `take ${size}`,
    perHour: (price: string) => `${price} / hour`,
  },
  isDone: 'Done',
  status: 'This cloud',
  healthy: 'Everything works.',
  unprotected: 'Everything runs, but is not safe yet.',
  degraded: 'Something needs attention.',
  processor: 'Processor',
  memory: 'Memory',
  disk: 'Disk',
};
