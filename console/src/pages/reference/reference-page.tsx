/** The API reference: a page of the server, in a frame because its library brings global styles. */
import { useComputedColorScheme, VisuallyHidden } from '@mantine/core';
import { useEffect } from 'react';
import { text } from '../../texts/text.ts';
import classes from './reference.module.css';

export function ReferencePage() {
  const scheme = useComputedColorScheme();
  const title = text.shell.apiDocs;
  useEffect(() => {
    document.title = `${title} · Cloudlet`;
  }, [title]);
  // The frame reads the colour scheme when it loads.
  return (
    <>
      <VisuallyHidden component="h1">{title}</VisuallyHidden>
      <iframe key={scheme} className={classes.frame} src="/api/docs" title={title} />
    </>
  );
}
