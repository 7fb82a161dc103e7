/** The whole window takes files; while some are held over it, it says so. */
import { CloudArrowUpIcon } from '@heroicons/react/24/outline';
import { useEffect, useState } from 'react';
import { showRefusal } from '../parts/notices.tsx';
import { text } from '../texts/text.ts';
import classes from './drop-zone.module.css';
import { droppedFiles } from './dropped-files.ts';
import { useUpload } from './upload-place.ts';

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;

export function DropZone() {
  const [isOver, setOver] = useState(false);
  const upload = useUpload();
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (event.dataTransfer === null || !hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      droppedFiles(event.dataTransfer).then(upload).catch(showRefusal);
    };
    window.addEventListener('dragover', over);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  });
  if (!isOver) return null;
  return (
    <div className={classes.zone}>
      <CloudArrowUpIcon width={48} aria-hidden />
      {text.uploads.dropHere}
    </div>
  );
}
