/** The tray of uploads. */
export const uploads = {
  title: 'Uploads',
  files: 'Files',
  dropHere: 'Drop to upload',
  summary: (done: number, all: number) => `${done} of ${all} uploaded`,
  failed: (count: number) => `${count} failed`,
  progress: (sent: string, total: string, speed: string) => `${sent} of ${total}, ${speed}/s`,
  waiting: 'waiting',
  fold: 'Fold the uploads up',
  unfold: 'Show the uploads',
  clear: 'Put away',
  cancel: (name: string) => `Cancel ${name}`,
  retry: (name: string) => `Send ${name} again`,
  retryAll: 'Send failed ones again',
  cancelAll: 'Cancel all',
};
