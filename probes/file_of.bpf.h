// Which file it is: from a descriptor or an inode to (device, inode, name), and the name's text, taken once.
//
// Regular files and block devices, and directories, which can be synced. A file that is removed and made again, as SQLite
// does with its journal, goes on under its name where the file system gives it the same inode; a file that is renamed
// begins anew. A block device is (its own number, 0, 0), whichever node it was opened by.
#pragma once

#include "memory.bpf.h"

#define NAME_BYTES 64

enum { IS_NONE, IS_FILE, IS_DIRECTORY };

// The generation tells a reused inode number.
struct about_t {
    char name[NAME_BYTES];
    u32 generation, unused;
};
// `name`: the hash that the kernel has of it and its directory.
struct file_key_t {
    u64 inode;
    u32 device, name;
};

static __always_inline int is_same(struct file_key_t *a, struct file_key_t *b)
{
    return a->inode == b->inode && a->device == b->device && a->name == b->name;
}

// The struct file that a descriptor of the current process stands for; 0 when there is none.
static __always_inline u64 find_file(u32 descriptor)
{
    u64 files = FOLLOW(bpf_get_current_task_btf(), task_struct__files, u64);
    u64 table = files ? FOLLOW(files, files_struct__fdt, u64) : 0;
    if (!table || descriptor >= FOLLOW(table, fdtable__max_fds, u32))
        return 0;
    return read_u64(FOLLOW(table, fdtable__fd, u64) + descriptor * 8ULL);
}

// Tells which file an inode is, and returns what: IS_NONE for pipes, sockets and the like.
static __always_inline int identify(u64 inode, struct file_key_t *key)
{
    if (!inode)
        return IS_NONE;
    READ(head, inode__HEAD, CAST(inode, inode));
    u32 type = GET(head, inode__i_mode, u16) & S_IFMT;
    key->inode = key->name = 0;
    key->device = GET(head, inode__i_rdev, u32);
    if (type == S_IFBLK)
        return IS_FILE;
    key->inode = GET(head, inode__i_ino, u64);
    key->device = read_u32(GET(head, inode__i_sb, u64) + super_block__s_dev);
#ifdef HAVE_dentry__d_alias
    u64 alias = read_u64(inode + inode__first);
    key->name = alias ? read_u32(alias - dentry__d_alias + dentry__hash) : 0;
#endif
    return type == S_IFREG ? IS_FILE : type == S_IFDIR ? IS_DIRECTORY : IS_NONE;
}

static __always_inline void describe_file(u64 inode, struct about_t *about)
{
    about->generation = read_u32(inode + inode__i_generation);
#ifdef HAVE_dentry__d_alias
    u64 alias = read_u64(inode + inode__first);
    if (alias)
        bpf_probe_read_kernel_str(about->name, NAME_BYTES, (void *)read_u64(alias - dentry__d_alias + dentry__name));
#endif
}

// One number for a file, well enough mixed to tell it from all others of the run.
static __always_inline u64 mix(struct file_key_t *key)
{
    return (key->inode ^ (u64)key->device << 32) * 0xFF51AFD7ED558CCDULL + key->name;
}
