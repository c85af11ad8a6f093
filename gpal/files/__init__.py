"""Files: how gpal writes its own, and how it reads those of others without trust.

output      a file or folder is complete or absent          staging     where it lies until then
csv, fits   tables for other programs
npz         arrays, of sizes that the file can have         saved_data  what stands in them
"""
