/**
 * Downloads by the browser: it opens a URL, which needs a ticket because browsers send no custom
 * header.
 */
import { useMutation } from '@tanstack/react-query';
import type { Cloud } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';

/** An operation, its path and its query. */
export type DownloadTarget = Parameters<Cloud['ticketUrl']>;

/** A download button: `download.mutate()` starts the download. */
export function useDownload(...target: DownloadTarget) {
  return useMutation({ mutationFn: () => cloud.ticketUrl(...target), onSuccess: follow });
}

/** The same, for a target chosen or fetched later: `download.mutate(async () => target)`. */
export function useDownloads() {
  return useMutation({
    mutationFn: async (find: () => Promise<DownloadTarget>) => cloud.ticketUrl(...(await find())),
    onSuccess: follow,
  });
}

/** An error then appears as a failed download, and the page stays. */
function follow(url: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  link.click();
}
