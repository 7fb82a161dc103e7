/** Opens an empty folder. Folders are name prefixes: nothing needs to be created. */
import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { text } from '../../../texts/text.ts';
import { type FolderSearch, inFolder } from '../queries.ts';
import { folderOf } from './relocating.ts';

interface NewFolderProps {
  readonly isOpen: boolean;
  /** The parent folder. */
  readonly prefix: string;
  readonly onClose: () => void;
}

export function NewFolder({ isOpen, prefix, onClose }: NewFolderProps) {
  return (
    <Dialog opened={isOpen} onClose={onClose} title={text.storage.newFolder}>
      {isOpen && <FolderForm prefix={prefix} onClose={onClose} />}
    </Dialog>
  );
}

function FolderForm({ prefix, onClose }: Omit<NewFolderProps, 'isOpen'>) {
  const [name, setName] = useState('');
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const folder = folderOf(name);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onClose();
        void navigate({ search: (search: FolderSearch) => inFolder(search, prefix + folder) });
      }}
    >
      <Stack>
        <TextInput
          data-autofocus
          label={text.storage.name}
          description={text.storage.newFolderHint}
          value={name}
          spellCheck={false}
          autoCapitalize="none"
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {text.shell.cancel}
          </Button>
          <Button type="submit" disabled={folder === ''}>
            {text.storage.openFolder}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
