/**
 * What an object looks like. Pictures, sound and film come from the data origin by a link of an hour; text is
 * shown as text, whatever it says; a PDF goes to the browser's own viewer, as nothing but a PDF.
 */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { StorageObjectDetails } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Refused } from '../../parts/refused.tsx';
import { text } from '../../texts/text.ts';
import classes from './object-drawer.module.css';

const LINK_SECONDS = 3600;
const TEXT_MAX_BYTES = 512 * 1024;
const PDF_MAX_BYTES = 50 * 1024 * 1024;
const TEXT_TYPE =
  /^(text\/|application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh|sql|x-ndjson)\b|[^;]*\+(json|xml)\b)/;

type Kind = 'image' | 'video' | 'audio' | 'text' | 'pdf' | 'none';

function kindOf({ mime_type, size, is_delete_marker }: StorageObjectDetails): Kind {
  if (is_delete_marker || size === 0) return 'none';
  const [main] = mime_type.split('/', 1);
  if (main === 'image' || main === 'video' || main === 'audio') return main;
  if (mime_type === 'application/pdf') return size <= PDF_MAX_BYTES ? 'pdf' : 'none';
  return TEXT_TYPE.test(mime_type) && size <= TEXT_MAX_BYTES ? 'text' : 'none';
}

export function Preview({ object }: { object: StorageObjectDetails }) {
  const kind = kindOf(object);
  if (kind === 'none') {
    return (
      <Text size="sm" c="dimmed">
        {object.is_delete_marker ? text.storage.isDeleted : text.storage.noPreview}
      </Text>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className={classes.preview} tabIndex={0} aria-label={text.storage.preview}>
      {kind === 'text' && <TextPreview object={object} />}
      {kind === 'pdf' && <PdfPreview object={object} />}
      {kind !== 'text' && kind !== 'pdf' && <MediaPreview object={object} kind={kind} />}
    </section>
  );
}

function MediaPreview({ object, kind }: { object: StorageObjectDetails; kind: 'image' | 'video' | 'audio' }) {
  const { id, version_id, bucket, name } = object;
  const { data, error } = useQuery({
    queryKey: ['files', bucket, 'link', id, version_id],
    queryFn: () => cloud.objects.share(id, { expires_in: LINK_SECONDS, version_id }),
    staleTime: (LINK_SECONDS / 2) * 1000,
  });
  if (data === undefined) return <Refused error={error} />;
  if (kind === 'image') return <img src={data.cdn_url} alt={name} />;
  // biome-ignore lint/a11y/useMediaCaption: nobody gave any
  return kind === 'video' ? <video src={data.cdn_url} controls /> : <audio src={data.cdn_url} controls />;
}

function useContent<T>(object: StorageObjectDetails, read: (response: Response) => Promise<T>) {
  const { id, version_id, bucket } = object;
  return useQuery({
    queryKey: ['files', bucket, 'content', id, version_id],
    queryFn: async ({ signal }) => read(await cloud.objects.download(id, { version_id }, { signal })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
}

function TextPreview({ object }: { object: StorageObjectDetails }) {
  const { data, error } = useContent(object, (response) => response.text());
  if (data === undefined) return <Refused error={error} />;
  return <pre className="mono">{object.mime_type.startsWith('application/json') ? pretty(data) : data}</pre>;
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function PdfPreview({ object }: { object: StorageObjectDetails }) {
  const { data, error } = useContent(object, (response) => response.arrayBuffer());
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (data === undefined) return;
    const made = URL.createObjectURL(new Blob([data], { type: 'application/pdf' }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data]);
  return url === undefined ? <Refused error={error} /> : <iframe src={url} title={object.name} />;
}
