/** A button that asks for files and uploads them. */
import { FileButton, type FileButtonProps } from '@mantine/core';
import { useRef } from 'react';
import { chosenFiles } from './dropped-files.ts';
import { useUpload } from './upload-place.ts';

export function ChooseFiles({ children }: { children: FileButtonProps['children'] }) {
  const upload = useUpload();
  const forget = useRef<() => void>(null);
  return (
    <FileButton
      multiple
      resetRef={forget}
      onChange={(files) => {
        void upload(chosenFiles(files));
        // Else browsers do nothing when the same file is chosen again.
        forget.current?.();
      }}
    >
      {children}
    </FileButton>
  );
}
