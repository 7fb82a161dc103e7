/** The tray of uploads. */
export const uploads = {
  title: 'Uploads',
  summary: (done: number, all: number) => `${done} of ${all} uploaded`,
};
