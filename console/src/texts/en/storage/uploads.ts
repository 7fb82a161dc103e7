/** The tray of uploads. */
import { count } from '../counted.ts';

export const uploads = {
  title: 'Uploads',
  files: 'Files',
  dropHere: 'Drop to upload',
  summary: (done: number, all: number) => `${count(done)} of ${count(all)} uploaded`,
  failed: (files: number) => `${count(files)} failed`,
  cancelled: (files: number) => `${count(files)} cancelled`,
  halted:
    'The connection was lost. Uploads resume automatically when Cloudlet is reachable; files of less than ' +
    '64 MB start again from the beginning.',
  askNow: 'Retry now',
  notStored: 'cancelled',
  unreadable: 'The file was changed, moved or removed on this computer. Choose it again.',
  progress: (sent: string, total: string, speed: string) => `${sent} of ${total}, ${speed}/s`,
  waiting: 'waiting',
  paused: (percent: number) => `paused at ${percent} %`,
  pause: (name: string) => `Pause ${name}`,
  resume: (name: string) => `Resume ${name}`,
  damaged: 'A part arrived damaged. Send the file again; undamaged parts are kept.',
  otherFile: 'This is not the file of the unfinished upload, or it has changed since.',
  fold: 'Collapse uploads',
  unfold: 'Expand uploads',
  clear: 'Close uploads',
  cancel: (name: string) => `Cancel ${name}`,
  retry: (name: string) => `Retry ${name}`,
  retryAll: 'Retry failed uploads',
  retryCancelled: 'Retry',
  cancelAll: 'Cancel all',
};
