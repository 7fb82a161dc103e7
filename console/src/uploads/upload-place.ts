/** Where files go that are dropped on some page. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { cloud } from '../cloud.ts';
import { showRefusal } from '../parts/notices.tsx';
import { queryClient } from '../queries.ts';
import type { FoundFile } from './dropped-files.ts';
import { uploadQueue } from './upload-queue.ts';

const DEFAULT_BUCKET = 'uploads';

/**
 * Into the folder that is shown; elsewhere into the only bucket, or into `uploads`, which is made. It shows a
 * refusal by itself.
 */
export function useUpload(): (files: readonly FoundFile[]) => Promise<void> {
  const { bucket: shown } = useParams({ strict: false });
  const { prefix = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  return async (files) => {
    if (files.length === 0) return;
    const folder = shown === undefined ? '' : prefix;
    try {
      const bucket = shown ?? (await findBucket());
      uploadQueue.add(files.map(({ file, path }) => ({ file, bucket, name: folder + path })));
      if (shown === undefined) await navigate({ to: '/storage/$bucket', params: { bucket } });
    } catch (error) {
      showRefusal(error);
    }
  };
}

async function findBucket(): Promise<string> {
  const buckets = await cloud.listBuckets().all();
  const [only] = buckets;
  if (buckets.length === 1 && only !== undefined) return only.name;
  if (!buckets.some(({ name }) => name === DEFAULT_BUCKET)) {
    await cloud.createBucket({ name: DEFAULT_BUCKET, versioning: true });
    await queryClient.invalidateQueries({ queryKey: ['buckets'] });
  }
  return DEFAULT_BUCKET;
}
