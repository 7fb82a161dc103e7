/** Storage › bucket › folder › folder: each a link. */
import { Breadcrumbs } from '@mantine/core';
import { AnchorLink } from '../../parts/links.tsx';
import { text } from '../../texts/text.ts';

export function FolderTrail({ bucket, prefix }: { bucket: string; prefix: string }) {
  const folders = prefix.split('/').slice(0, -1);
  return (
    <nav aria-label={text.storage.trail}>
      <Breadcrumbs separator="›" mb={4} style={{ flexWrap: 'wrap' }}>
        <AnchorLink to="/storage" size="sm">
          {text.storage.title}
        </AnchorLink>
        {folders.length > 0 && (
          <AnchorLink to="/storage/$bucket" params={{ bucket }} size="sm">
            {bucket}
          </AnchorLink>
        )}
        {folders.slice(0, -1).map((folder, at) => {
          const path = `${folders.slice(0, at + 1).join('/')}/`;
          return (
            <AnchorLink
              key={path}
              to="/storage/$bucket"
              params={{ bucket }}
              search={{ prefix: path }}
              size="sm"
            >
              {folder}
            </AnchorLink>
          );
        })}
      </Breadcrumbs>
    </nav>
  );
}
